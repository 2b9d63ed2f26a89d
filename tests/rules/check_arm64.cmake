# Checks that vm, or a part of it, compiles for 64-bit ARM without a warning, with the preset arm64, and that its
# walkers of tables use NEON's table look-ups. Nothing is linked, so the headers of this machine's libraries are enough.
#   cmake -DROOT=<source folder> -DFOLDER=<scratch> -DOPTIONS=<list of -D…, where the libraries are> -DTARGETS=<what to
#     compile: all of vm, or the walkers of tables> -P check_arm64.cmake
find_program(compiler aarch64-linux-gnu-g++)
if(NOT compiler)
  message("skipped: aarch64-linux-gnu-g++ is absent (Debian: g++-aarch64-linux-gnu)")
  return()
endif()
find_program(objdump aarch64-linux-gnu-objdump REQUIRED)
include(${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake)

file(LOCK ${FOLDER} DIRECTORY GUARD PROCESS)  # the folder keeps compiled objects: another run may be using it

run(pkg-config --variable pc_path pkg-config)
string(STRIP "${output}" native_packages)
set(ENV{PKG_CONFIG_PATH} ${native_packages})  # searched before the preset's
# -O0 is enough to find warnings and to see which instructions walkers use. Without batches, the walkers of tables have an
# object of their own.
run(${CMAKE_COMMAND} -S ${ROOT} --preset arm64 -B ${FOLDER} -DFORESTVM_TESTS=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O0
  -DFORESTVM_UNITY=OFF ${OPTIONS})
run(${CMAKE_COMMAND} --build ${FOLDER} --target ${TARGETS})

file(GLOB_RECURSE objects ${FOLDER}/*_Tables.cpp.o)
if(NOT objects)
  message(FATAL_ERROR "no walkers of tables under ${FOLDER}: nothing was checked")
endif()
foreach(object IN LISTS objects)
  run(${objdump} --disassemble --no-show-raw-insn ${object})
  string(REGEX MATCHALL "\ttbl\tv[0-9]+\\.16b" lookups "${output}")
  list(LENGTH lookups count)
  if(count EQUAL 0)
    message(FATAL_ERROR "${object}: no tbl instruction: tables are looked up without NEON")
  endif()
  message("${object}: ${count} tbl instructions")
endforeach()
