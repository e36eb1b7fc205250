"""From the loop IR to native code: LLVM IR as text, compiled and linked by llvmlite."""
