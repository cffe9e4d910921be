//go:build !purego

#include "textflag.h"

// ENDS puts bits into R: bytes that end a plain run, quotes and control bytes. SLASHES the same for backslashes.
#define ENDS(X, R) \
	MOVO     X, X4;    \
	MOVO     X, X5;    \
	PCMPEQB  X8, X4;   \
	PMINUB   X10, X5;  \
	PCMPEQB  X, X5;    \
	POR      X5, X4;   \
	PMOVMSKB X4, R

#define SLASHES(X, R) \
	MOVO     X, X4;  \
	PCMPEQB  X9, X4; \
	PMOVMSKB X4, R

// ESCAPES are bytes that may stand behind a backslash. The backslash itself is added by the caller.
#define ESCAPES(X, R) \
	MOVO     X, X4;   \
	MOVO     X, X5;   \
	PCMPEQB  X8, X4;  \
	PCMPEQB  X13, X5; \
	POR      X5, X4;  \
	MOVO     X, X5;   \
	PCMPEQB  X14, X5; \
	POR      X5, X4;  \
	MOVO     X, X5;   \
	POR      X6, X5;  \
	PCMPEQB  X11, X5; \
	POR      X5, X4;  \
	MOVO     X, X5;   \
	POR      X7, X5;  \
	PCMPEQB  X12, X5; \
	POR      X5, X4;  \
	PMOVMSKB X4, R

// JOIN makes one word of four times 16 bits.
#define JOIN(A, B, C, D) \
	SHLQ $16, B; \
	SHLQ $32, C; \
	SHLQ $48, D; \
	ORQ  B, A;   \
	ORQ  D, C;   \
	ORQ  C, A

// func stringBlocks(p []byte) int
//
// SI text, CX its length, DI place, R8 1 when the byte at DI is escaped.
// X8 quotes, X9 backslashes, X10 the last control byte, X6, X7 and X11 to X14 what makes an escape.
TEXT ·stringBlocks(SB), NOSPLIT, $0-32
	MOVQ p_base+0(FP), SI
	MOVQ p_len+8(FP), CX
	XORQ DI, DI
	XORQ R8, R8
	MOVQ $0x2222222222222222, AX
	MOVQ AX, X8
	PUNPCKLQDQ X8, X8
	MOVQ $0x5c5c5c5c5c5c5c5c, AX
	MOVQ AX, X9
	PUNPCKLQDQ X9, X9
	MOVQ $0x1f1f1f1f1f1f1f1f, AX
	MOVQ AX, X10
	PUNPCKLQDQ X10, X10
	MOVQ $0x7272727272727272, AX // r, and b with bit 4
	MOVQ AX, X11
	PUNPCKLQDQ X11, X11
	MOVQ $0x6e6e6e6e6e6e6e6e, AX // n, and f with bit 3
	MOVQ AX, X12
	PUNPCKLQDQ X12, X12
	MOVQ $0x7474747474747474, AX // t
	MOVQ AX, X13
	PUNPCKLQDQ X13, X13
	MOVQ $0x2f2f2f2f2f2f2f2f, AX // the slash
	MOVQ AX, X14
	PUNPCKLQDQ X14, X14

	MOVQ $0x1010101010101010, AX
	MOVQ AX, X6
	PUNPCKLQDQ X6, X6
	MOVQ $0x0808080808080808, AX
	MOVQ AX, X7
	PUNPCKLQDQ X7, X7
	SUBQ $64, CX
	JLT  rest

block:
	MOVOU (SI)(DI*1), X0
	MOVOU 16(SI)(DI*1), X1
	MOVOU 32(SI)(DI*1), X2
	MOVOU 48(SI)(DI*1), X3
	ENDS(X0, AX)
	ENDS(X1, BX)
	ENDS(X2, DX)
	ENDS(X3, R9)
	JOIN(AX, BX, DX, R9)
	SLASHES(X0, R10)
	SLASHES(X1, R11)
	SLASHES(X2, R12)
	SLASHES(X3, R13)
	JOIN(R10, R11, R12, R13)
	MOVQ R10, R11
	ORQ  R8, R11
	JNE  escaped
	TESTQ AX, AX
	JNE  found

next:
	ADDQ $64, DI
	CMPQ DI, CX
	JLE  block

rest:
	// A backslash that ends the last block is left to the caller.
	SUBQ R8, DI
	MOVQ DI, ret+24(FP)
	RET

found:
	BSFQ AX, AX
	ADDQ AX, DI
	MOVQ DI, ret+24(FP)
	RET

escaped:
	// Of a row of backslashes every other one escapes the next byte. Adding carries through each row at once and leaves
	// its parity: R10 backslashes, R11 those or an escaped first byte, R12 escaping ones and the byte behind, R13 odd bits.
	MOVQ R8, R12
	NOTQ R12
	ANDQ R10, R12
	MOVQ $0xaaaaaaaaaaaaaaaa, R13
	LEAQ (R12)(R12*1), BX
	ORQ  R13, BX
	SUBQ R12, BX
	XORQ R13, BX
	MOVQ BX, R12
	XORQ R12, R11 // the escaped bytes
	MOVQ R12, R8
	ANDQ R10, R8
	SHRQ $63, R8
	ESCAPES(X0, BX)
	ESCAPES(X1, DX)
	ESCAPES(X2, R12)
	ESCAPES(X3, R13)
	JOIN(BX, DX, R12, R13)
	ORQ  R10, BX
	NOTQ BX
	ANDQ R11, BX // escaped, and not by one of the short escapes
	NOTQ R11
	ANDQ R11, AX // ends that are not escaped
	SHRQ $1, BX  // the backslash is what stops, and not the byte behind it
	JCS  before
	ORQ  BX, AX
	JEQ  next
	BSFQ AX, AX
	ADDQ AX, DI
	MOVQ DI, ret+24(FP)
	RET

before:
	// The backslash was the last byte of the block before.
	DECQ DI
	MOVQ DI, ret+24(FP)
	RET
