# Builds the runtime library for each CPU target alone; for the smallest target also without support for GPUs, then with
# a few layouts; and checks its sizes. Then builds the program, and predicts with a layout that it has, with one that it
# lacks, and with a GPU, which it lacks too.
#   cmake -DROOT=… -DMODEL=<model file> -DROWS=… -DSTRIP=… -DOPTIONS=<of the configuration> -DGENERATOR=<CMake's> -P check_small_build.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake)
set(folder $ENV{TMPDIR})
set(library ${folder}/build/lib/libforestvm_runtime.so)
set(forestvm ${folder}/build/cli/forestvm)

# check_library(LIMIT OPTION…): configures with further options, builds the library and checks its size.
function(check_library limit)
  run(${CMAKE_COMMAND} -S ${ROOT} -B ${folder}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release -DFORESTVM_TESTS=OFF
    -DFORESTVM_BENCH=OFF -DFORESTVM_CUDA=OFF -DFORESTVM_HIP=OFF -DFORESTVM_TARGETS=baseline ${OPTIONS} ${ARGN})
  run(${CMAKE_COMMAND} --build ${folder}/build --target forestvm_runtime)
  run(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check_size.sh ${STRIP} ${library} ${limit})
endfunction()

# check_refused(WHAT ERROR ARGUMENT…): predicts, and expects exit code 3 and this text in the error.
function(check_refused what expected)
  execute_process(COMMAND ${forestvm} run ${MODEL} ${ROWS} ${ARGN} RESULT_VARIABLE code ERROR_VARIABLE error OUTPUT_QUIET)
  if(NOT code EQUAL 3 OR NOT error MATCHES "${expected}")
    message(FATAL_ERROR "${what}: exit code ${code}, '${error}'")
  endif()
endfunction()

check_library(1270000 -DFORESTVM_TARGETS=avx2)
check_library(1546000 -DFORESTVM_TARGETS=avx512)
check_library(1000000)
check_library(936000 -DFORESTVM_GPU=OFF)
check_library(688000 "-DFORESTVM_LAYOUTS=sparse8\\\;sparse4\\\;tables")
run(${CMAKE_COMMAND} --build ${folder}/build --target forestvm)
run(${forestvm} run ${MODEL} ${ROWS} --schedule "layout(tree, sparse8)" -o ${folder}/out.csv)
run(${forestvm} run ${MODEL} ${ROWS} --backend emulator -o ${folder}/emulated.csv)
check_refused("a layout that is not built" "built without the layout array" --schedule "layout(tree, array)")
set(no_gpu "backend: forestvm was built without support for GPUs")
check_refused("a GPU of a build without" "no CUDA ${no_gpu}" --backend cuda)
run(${forestvm} devices)
if(NOT output MATCHES "no CUDA ${no_gpu}.*no HIP ${no_gpu}")
  message(FATAL_ERROR "forestvm devices: '${output}'")
endif()
