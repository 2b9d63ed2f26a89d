// The walkers of a layout of tiles.
#pragma once

#include "vm/host/walkers/of/array_tiles4.hpp"
