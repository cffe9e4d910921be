package esjson

import (
	"bytes"
	"math"
	"strconv"
)

// Number appends f as ECMAScript prints it: -0 as 0, plain digits from 1e-6 up to below 1e21, else an exponent with
// its sign. What is no number in JSON (NaN, infinities) becomes null, as JSON.stringify makes it.
func Number(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if f == 0 {
		return append(dst, '0')
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go writes at least two exponent digits, ECMAScript as few as possible.
	if n := len(dst); n-at > 4 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// appendNumber appends the number literal lit in ECMAScript's spelling. With keep set, a literal whose value a double
// cannot hold (too many digits, too big, too small) keeps its spelling: the next reader then decides what it can hold,
// and no digit is lost.
func appendNumber(dst, lit []byte, keep bool) []byte {
	if len(lit) <= 15 && plainInteger(lit) {
		return append(dst, lit...)
	}
	f, _ := strconv.ParseFloat(string(lit), 64) // a range error still gives the infinity or zero that JavaScript has
	at := len(dst)
	dst = Number(dst, f)
	if keep && !bytes.Equal(dst[at:], lit) && !sameDecimal(dst[at:], lit) {
		return append(dst[:at], lit...)
	}
	return dst
}

// plainInteger reports whether lit is digits only, perhaps with a sign, and not -0.
func plainInteger(lit []byte) bool {
	if len(lit) > 1 && lit[0] == '-' {
		if lit[1] == '0' {
			return false
		}
		lit = lit[1:]
	}
	for _, c := range lit {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// sameDecimal reports whether two number literals denote the same decimal value in any spelling.
func sameDecimal(a, b []byte) bool {
	na, da, ea, ok1 := decimal(a)
	nb, db, eb, ok2 := decimal(b)
	if !ok1 || !ok2 {
		return false
	}
	if len(da) == 0 || len(db) == 0 {
		return len(da) == len(db)
	}
	return na == nb && ea == eb && bytes.Equal(da, db)
}

// decimal takes a literal apart: sign, significant digits without zeros at either end, and the power of ten of the
// last of them. ok is false for what is no number, or an exponent beyond reason.
func decimal(lit []byte) (neg bool, digits []byte, exp int, ok bool) {
	if len(lit) > 0 && lit[0] == '-' {
		neg, lit = true, lit[1:]
	}
	mant := lit
	if i := bytes.IndexAny(lit, "eE"); i >= 0 {
		mant = lit[:i]
		e := lit[i+1:]
		if len(e) > 0 && e[0] == '+' {
			e = e[1:]
		}
		n, err := strconv.Atoi(string(e))
		if err != nil && bytes.ContainsAny(mant, "123456789") {
			return false, nil, 0, false
		}
		exp = n
	}
	digits = make([]byte, 0, len(mant))
	point := false
	for _, c := range mant {
		switch {
		case c == '.':
			point = true
		case c >= '0' && c <= '9':
			digits = append(digits, c)
			if point {
				exp--
			}
		default:
			return false, nil, 0, false
		}
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exp++
	}
	return neg, bytes.TrimLeft(digits, "0"), exp, len(mant) > 0
}
