// The walkers of a layout of tiles.
#pragma once

#include "vm/host/walkers/of/ArrayTiles4.hpp"
