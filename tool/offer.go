package tool

import "slices"

// Offer is which tools a request describes to a model, by their names or older names. The zero
// value is all that are not opt-in.
type Offer struct {
	Include []string // the user wants them offered
	Exclude []string // the user has switched them off: a call is refused, too
	Wants   []string // the model does better with them
	Spares  []string // the model does without them; a call runs
}

// Excludes reports whether the user has switched a tool off.
func (o Offer) Excludes(s Spec) bool { return o.Exclude != nil && named(o.Exclude, s) }

// Offers reports whether a request describes a tool to the model. The user's choice goes before
// what is known of the model.
func (o Offer) Offers(s Spec) bool {
	switch {
	case o.Excludes(s):
		return false
	case named(o.Include, s):
		return true
	case named(o.Spares, s):
		return false
	}
	return !s.OptIn || named(o.Wants, s)
}

func named(list []string, s Spec) bool {
	return slices.Contains(list, s.Name) || slices.ContainsFunc(s.Aliases, func(alias string) bool { return slices.Contains(list, alias) })
}
