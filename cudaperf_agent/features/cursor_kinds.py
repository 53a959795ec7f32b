"""Numbers that libclang 18 gives to cursor kinds and operators, as far as they are looked at."""

from __future__ import annotations


class K:
    """Cursor kinds that are looked at, as the numbers libclang gives."""

    UNEXPOSED_DECL = 1
    STRUCT = 2
    UNION = 3
    CLASS = 4
    ENUM = 5
    FIELD = 6
    ENUMERATOR = 7
    FUNCTION = 8
    VAR = 9
    PARM = 10
    METHOD = 21
    NAMESPACE = 22
    LINKAGE_SPEC = 23
    CONSTRUCTOR = 24
    FUNCTION_TEMPLATE = 30
    CLASS_TEMPLATE = 31
    TYPE_REF = 43
    TEMPLATE_REF = 45
    NAMESPACE_REF = 46
    UNEXPOSED = 100
    DECL_REF = 101
    MEMBER_REF = 102
    CALL = 103
    INTEGER = 106
    FLOATING = 107
    STRING = 109
    CHARACTER = 110
    PAREN = 111
    UNARY = 112
    SUBSCRIPT = 113
    BINARY = 114
    COMPOUND_ASSIGN = 115
    CONDITIONAL = 116
    C_CAST = 117
    INIT_LIST = 119
    STATIC_CAST = 124
    REINTERPRET_CAST = 126
    CONST_CAST = 127
    FUNCTIONAL_CAST = 128
    BOOL = 130
    NULLPTR = 131
    THIS = 132
    SIZEOF = 136
    LAMBDA = 144
    FIRST_STMT = 200
    COMPOUND = 202
    CASE = 203
    DEFAULT = 204
    IF = 205
    SWITCH = 206
    WHILE = 207
    DO = 208
    FOR = 209
    GOTO = 210
    CONTINUE = 212
    BREAK = 213
    RETURN = 214
    ASM = 215
    FOR_RANGE = 225
    NULL_STMT = 230
    DECL_STMT = 231
    GLOBAL_ATTR = 414
    CONSTANT_ATTR = 412
    DEVICE_ATTR = 413
    HOST_ATTR = 415
    SHARED_ATTR = 416


CASTS = frozenset({K.C_CAST, K.STATIC_CAST, K.REINTERPRET_CAST, K.CONST_CAST, K.FUNCTIONAL_CAST})
BINARY_OPCODES = {
    3: "*", 4: "/", 5: "%", 6: "+", 7: "-", 8: "<<", 9: ">>", 11: "<", 12: ">", 13: "<=", 14: ">=", 15: "==",
    16: "!=", 17: "&", 18: "^", 19: "|", 20: "&&", 21: "||", 22: "=", 23: "*=", 24: "/=", 25: "%=", 26: "+=",
    27: "-=", 28: "<<=", 29: ">>=", 30: "&=", 31: "^=", 32: "|=", 33: ",",
}  # fmt: skip
UNARY_OPCODES = {1: "p++", 2: "p--", 3: "++", 4: "--", 5: "&", 6: "*", 7: "+", 8: "-", 9: "~", 10: "!"}
