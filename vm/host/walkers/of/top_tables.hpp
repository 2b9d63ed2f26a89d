// The walkers of top tables.
#pragma once

#include "vm/host/walkers/of/tables.hpp"
