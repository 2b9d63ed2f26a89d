// Includes everything that a C++ program needs to predict with a trained forest:
//
//   #include <forestvm/forestvm.hpp>
//
//   auto model = forestvm::load_model("model.json");               // of any trainer; see load.hpp
//   if (!model) throw std::runtime_error(model.error().text());
//   auto compiled = forestvm::compile(*model, forestvm::automatic_schedule(*model));
//   if (!compiled) throw std::runtime_error(compiled.error().text());
//   auto predictor = forestvm::host_backend(compiled->program, {.threads = 2});
//   if (!predictor) throw std::runtime_error(predictor.error().text());
//
//   auto context = (*predictor)->make_context();                   // one per calling thread
//   const auto kind = forestvm::OutputKind::Value;
//   std::vector<float> values(n * forestvm::output_width(compiled->program, kind));
//   const forestvm::RowBlock block{rows, n, stride};
//   auto done = (*predictor)->predict(*context, block, kind, values.data());
//
// compiled->program.save("model.fvm") keeps the program; forestvm::Program::load maps it again.
//
// Functions report errors as values. They throw only std::bad_alloc, and forestvm::InternalError for a bug of forestvm.
#pragma once

#include <forestvm/backend.hpp>
#include <forestvm/background.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/load.hpp>
#include <forestvm/model.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/partial_dependence.hpp>
#include <forestvm/program.hpp>
#include <forestvm/proximity.hpp>
#include <forestvm/result.hpp>
#include <forestvm/rounds.hpp>
#include <forestvm/samples.hpp>
#include <forestvm/schedule.hpp>
