// The printed form of a Model.
#pragma once

#include <string>

#include <forestvm/model.hpp>

namespace forestvm::scheduler {

std::string print(const Model& model);

}  // namespace forestvm::scheduler
