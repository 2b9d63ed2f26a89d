// The named schedules that depend on the model, and some on the contract: one function for each FVM_MODEL_SCHEDULE of
// named_schedules.def.
#pragma once

#include <forestvm/core/contract.hpp>
#include <forestvm/model.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm::scheduler {

#define FVM_SCHEDULE(name, backend, text, meaning)
#define FVM_MODEL_SCHEDULE(name, backend, make, meaning) Schedule make(const Model& model, Contract contract);
#include "scheduler/choose/named_schedules.def"

}  // namespace forestvm::scheduler
