package api

import "fmt"

// Page is a part of a list that continues at a cursor.
type Page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next_cursor"` // null at the end
}

// PageOf returns a page with these items; next is "" at the end.
func PageOf[T any](items []T, next string) Page[T] {
	out := Page[T]{Items: items}
	if out.Items == nil {
		out.Items = []T{} // JSON shows [] and not null
	}
	if next != "" {
		out.Next = &next
	}
	return out
}

// Each returns what of makes of each item, in their order; an empty list of nothing.
func Each[A, B any](all []A, of func(A) B) []B {
	out := make([]B, len(all))
	for i, one := range all {
		out[i] = of(one)
	}
	return out
}

// TryEach is Each for a function that can fail; it ends at the first error.
func TryEach[A, B any](all []A, of func(A) (B, error)) ([]B, error) {
	out := make([]B, len(all))
	for i, one := range all {
		var err error
		if out[i], err = of(one); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Some returns what of makes of each item that it reports true for, in their order; nil if there is none.
func Some[A, B any](all []A, of func(A) (B, bool)) (out []B) {
	for _, one := range all {
		if made, ok := of(one); ok {
			out = append(out, made)
		}
	}
	return out
}

// SetOf returns the set of the items.
func SetOf[T comparable](items []T) map[T]bool {
	out := make(map[T]bool, len(items))
	for _, one := range items {
		out[one] = true
	}
	return out
}

// Distinct returns the items whose key no earlier item has.
func Distinct[T any, K comparable](items []T, key func(T) K) (out []T) {
	seen := map[K]bool{}
	for _, one := range items {
		if k := key(one); !seen[k] {
			seen[k] = true
			out = append(out, one)
		}
	}
	return out
}

// Failed returns the error of what was attempted, as format names it; nil for nil.
func Failed(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
