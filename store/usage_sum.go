package store

import "github.com/roost-dev/roost/money"

// and adds two usages. The cost is unknown only when it is in both: what has no
// price does not hide what has one.
func (u Usage) and(other Usage) Usage {
	out := Usage{
		TokensIn: plus(u.TokensIn, other.TokensIn), TokensOut: plus(u.TokensOut, other.TokensOut),
		CacheWrites: plus(u.CacheWrites, other.CacheWrites), CacheReads: plus(u.CacheReads, other.CacheReads),
	}
	if u.Cost != nil || other.Cost != nil {
		cost := money.USD(plus(u.micros(), other.micros()))
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
	if cost := money.USD(u.micros() - other.micros()); cost != 0 {
		out.Cost = &cost
	}
	return out
}

// some reports whether anything was spent.
func (u Usage) some() bool {
	return u.TokensIn != 0 || u.TokensOut != 0 || u.CacheWrites != 0 || u.CacheReads != 0 || u.micros() != 0
}

// share is the i-th of n equal parts. The first ones take what cannot be divided,
// so that the parts add up.
func (u Usage) share(i, n int) Usage {
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
