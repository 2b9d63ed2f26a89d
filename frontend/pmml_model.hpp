// Makes a Model of a PMML document of trees.
#pragma once

#include <cstddef>
#include <span>

#include <forestvm/load.hpp>

#include "frontend/parsed_model.hpp"

namespace forestvm::frontend {

/// Returns true for an XML document whose first element is PMML.
bool sniff_pmml(std::span<const std::byte> bytes);

/// Reads a document of one model. Errors name line and element: see read_pmml_document.
Result<ParsedModel> read_pmml(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
