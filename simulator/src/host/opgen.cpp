// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "describe.h"
#include "op_registry.h"
#include "signature.h"

// Prints the C interface of the operators it is linked with. It knows none of them by name.
namespace sim {
namespace {

const char kNotice[] =
    "// SPDX-License-Identifier: Apache-2.0\n"
    "// Generated from the op definitions; do not edit.\n";

std::string FirstPhase(const ops::OpDef& def) {
    std::string text = "aclnnStatus aclnn" + def.type + "GetWorkspaceSize(\n";
    for (const CParam& param : CSignature(def)) {
        text += "    " + param.type + param.name + ",\n";
    }
    return text + "    uint64_t *workspaceSize,\n    aclOpExecutor **executor)";
}

std::string SecondPhase(const ops::OpDef& def) {
    return "aclnnStatus aclnn" + def.type +
           "(\n    void *workspace,\n    uint64_t workspaceSize,\n    aclOpExecutor *executor,\n"
           "    aclrtStream stream)";
}

void WriteHeader(std::ostream& out) {
    out << kNotice << "#pragma once\n\n#ifndef __cplusplus\n#include <stdbool.h>\n#endif\n"
        << "#include \"aclnn/acl_meta.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
    for (const auto& op : AllOperators()) {
        out << "ACL_FUNC_VISIBILITY " << FirstPhase(op->def) << ";\n\n"
            << "ACL_FUNC_VISIBILITY " << SecondPhase(op->def) << ";\n\n";
    }
    out << "#ifdef __cplusplus\n}\n#endif\n";
}

// The kernel's parameters: inputs, outputs (a Ref is in both), workspace, tiling.
size_t EntryParams(const ops::OpDef& def) {
    return def.inputs.size() + def.outputs.size() + 2;
}

void WriteEntry(std::ostream& out, const ops::OpDef& def) {
    const std::string kernel = SnakeCase(def.type);
    out << "extern \"C\" void " << kernel << "(";
    for (size_t i = 0; i < EntryParams(def); ++i) {
        out << (i == 0 ? "" : ", ") << "uint8_t *";
    }
    out << ");\n\nstatic void Call" << def.type << "(uint8_t *const *address)\n{\n    " << kernel
        << "(";
    for (size_t i = 0; i < EntryParams(def); ++i) {
        out << (i == 0 ? "" : ", ") << "address[" << i << "]";
    }
    out << ");\n}\n\n";
}

void WriteSource(std::ostream& out) {
    out << kNotice << "#include \"aclnn_ops.h\"\n#include \"entry.h\"\n\n";
    for (const auto& op : AllOperators()) {
        const ops::OpDef& def = op->def;
        WriteEntry(out, def);
        out << "extern \"C\" " << FirstPhase(def) << "\n{\n"
            << "    const sim::Argument arguments[] = {";
        const auto params = CSignature(def);
        for (size_t i = 0; i < params.size(); ++i) {
            out << (i == 0 ? "" : ", ") << "sim::Argument(" << params[i].name << ")";
        }
        out << "};\n    return sim::PrepareOp(\"" << def.type << "\", &Call" << def.type
            << ", arguments, " << params.size() << ", workspaceSize, executor);\n}\n\n"
            << "extern \"C\" " << SecondPhase(def) << "\n{\n    return sim::RunOp(\"" << def.type
            << "\", workspace, workspaceSize, executor, stream);\n}\n\n";
    }
}

bool WriteFile(const std::string& path, void (*write)(std::ostream&)) {
    std::ofstream out(path);
    write(out);
    out.close();
    if (!out) {
        std::cerr << "kda_opgen: cannot write " << path << "\n";
    }
    return static_cast<bool>(out);
}

int Run(int argc, char** argv) {
    bool good = argc > 1;
    for (int i = 1; i + 1 < argc && good; i += 2) {
        const std::string option = argv[i];
        if (option == "--source") {
            good = WriteFile(argv[i + 1], WriteSource);
        } else if (option == "--header") {
            good = WriteFile(argv[i + 1], WriteHeader);
        } else if (option == "--json") {
            good = WriteFile(argv[i + 1], [](std::ostream& out) { out << DescribeOperators(); });
        } else {
            good = false;
        }
    }
    if (!good || argc % 2 == 0) {
        std::cerr << "usage: kda_opgen [--source FILE] [--header FILE] [--json FILE]\n";
        return 2;
    }
    return 0;
}

}  // namespace
}  // namespace sim

int main(int argc, char** argv) {
    try {
        return sim::Run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "kda_opgen: " << error.what() << "\n";
        return 1;
    }
}
