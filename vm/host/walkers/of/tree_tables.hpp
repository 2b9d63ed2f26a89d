// The walkers of tree tables.
#pragma once

#include "vm/host/walkers/of/tables.hpp"
