# Builds the runtime library for one CPU target, first with all layouts, then with a few, and checks its sizes. Then
# builds the program and predicts with a layout that it has and with one that it lacks.
#   cmake -DROOT=… -DMODEL=<model file> -DROWS=… -DSTRIP=… -DOPTIONS=<of the configuration> -DGENERATOR=<CMake's> -P check_small_build.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake)
set(folder $ENV{TMPDIR})
run(${CMAKE_COMMAND} -S ${ROOT} -B ${folder}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release -DFORESTVM_TESTS=OFF
  -DFORESTVM_BENCH=OFF -DFORESTVM_CUDA=OFF -DFORESTVM_HIP=OFF -DFORESTVM_TARGETS=baseline ${OPTIONS})
set(library ${folder}/build/lib/libforestvm_runtime.so)
run(${CMAKE_COMMAND} --build ${folder}/build --target forestvm_runtime)
run(${CMAKE_CURRENT_LIST_DIR}/check_size.sh ${STRIP} ${library} 1150000)
run(${CMAKE_COMMAND} -S ${ROOT} -B ${folder}/build "-DFORESTVM_LAYOUTS=sparse8\;sparse4\;tables")
run(${CMAKE_COMMAND} --build ${folder}/build --target forestvm_runtime forestvm)
run(${CMAKE_CURRENT_LIST_DIR}/check_size.sh ${STRIP} ${library} 840000)
set(forestvm ${folder}/build/cli/forestvm)
run(${forestvm} run ${MODEL} ${ROWS} --schedule "layout(tree, sparse8)" -o ${folder}/out.csv)
execute_process(COMMAND ${forestvm} run ${MODEL} ${ROWS} --schedule "layout(tree, array)" RESULT_VARIABLE code
  ERROR_VARIABLE error OUTPUT_QUIET)
if(NOT code EQUAL 3 OR NOT error MATCHES "built without the layout array")
  message(FATAL_ERROR "a layout that is not built: exit code ${code}, '${error}'")
endif()
