// What a program's calls cost on a GPU, on paper, as a part of inspect's document.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include <forestvm/program.hpp>

#include "kernels/account/device_model.hpp"

namespace forestvm::cli {

/// Of a call with so many rows that asks for values; where linking refuses it, why.
void add_gpu_account(nlohmann::ordered_json& document, const Program& program, std::uint32_t rows,
                     const kernels::DeviceModel& device);

/// The devices that can be asked for, for help texts.
std::string device_notes();

}  // namespace forestvm::cli
