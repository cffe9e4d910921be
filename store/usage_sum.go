package store

import "github.com/roost-dev/roost/money"

// Plus adds two usages. The cost is unknown only when it is in both: what has no
// price does not hide what has one.
func (u Usage) Plus(other Usage) Usage {
	out := Usage{
		TokensIn: AddClamped(u.TokensIn, other.TokensIn), TokensOut: AddClamped(u.TokensOut, other.TokensOut),
		CacheWrites: AddClamped(u.CacheWrites, other.CacheWrites), CacheReads: AddClamped(u.CacheReads, other.CacheReads),
	}
	if u.Cost != nil || other.Cost != nil {
		cost := money.USD(AddClamped(u.Micros(), other.Micros()))
		out.Cost = &cost
	}
	return out
}

// less is what is left of a usage without another one.
func (u Usage) less(other Usage) Usage {
	out := Usage{
		TokensIn: u.TokensIn - other.TokensIn, TokensOut: u.TokensOut - other.TokensOut,
		CacheWrites: u.CacheWrites - other.CacheWrites, CacheReads: u.CacheReads - other.CacheReads,
	}
	if cost := money.USD(u.Micros() - other.Micros()); cost != 0 {
		out.Cost = &cost
	}
	return out
}

// NonZero reports whether anything was spent.
func (u Usage) NonZero() bool {
	return u.TokensIn != 0 || u.TokensOut != 0 || u.CacheWrites != 0 || u.CacheReads != 0 || u.Micros() != 0
}

// Share is the i-th of n equal parts. The first ones take what cannot be divided,
// so that the parts add up.
func (u Usage) Share(i, n int) Usage {
	part := func(whole int64) int64 {
		if whole < 0 { // a file that takes costs back; there is no even way
			if i > 0 {
				return 0
			}
			return whole
		}
		p := whole / int64(n)
		if int64(i) < whole%int64(n) {
			p++
		}
		return p
	}
	out := Usage{
		TokensIn: part(u.TokensIn), TokensOut: part(u.TokensOut),
		CacheWrites: part(u.CacheWrites), CacheReads: part(u.CacheReads),
	}
	if u.Cost != nil {
		cost := money.USD(part(int64(*u.Cost)))
		out.Cost = &cost
	}
	return out
}
