// Estimates what a program's calls cost on a GPU, as a part of inspect's document.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include <forestvm/program.hpp>

#include "kernels/account/device_model.hpp"

namespace forestvm::cli {

/// Adds the estimate for a call with `rows` rows that computes values, or the reason why linking refuses it.
void add_gpu_account(nlohmann::ordered_json& document, const Program& program, std::uint32_t rows,
                     const kernels::DeviceModel& device);

/// Lists the devices that --device-model can name, for help texts.
std::string device_notes();

}  // namespace forestvm::cli
