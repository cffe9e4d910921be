package tool

import "testing"

// Off goes before on, the user before the model, and nothing said leaves the usual set.
func TestOffer(t *testing.T) {
	usual, silent := Spec{Name: "apply_diff"}, Spec{Name: "edit", Aliases: []string{"search_and_replace"}, OptIn: true}
	for _, c := range []struct {
		name                  string
		offer                 Offer
		usual, silent, refuse bool // refuse: a call of the silent one
	}{
		{"nothing said", Offer{}, true, false, false},
		{"the user wants it", Offer{Include: []string{"edit"}}, true, true, false},
		{"by an older name", Offer{Include: []string{"search_and_replace"}}, true, true, false},
		{"the model wants it", Offer{Wants: []string{"edit"}}, true, true, false},
		{"the model spares one", Offer{Wants: []string{"edit"}, Spares: []string{"apply_diff"}}, false, true, false},
		{"and the user wants that one", Offer{Include: []string{"apply_diff"}, Spares: []string{"apply_diff"}}, true, false, false},
		{"the user switched it off", Offer{Exclude: []string{"edit"}, Wants: []string{"edit"}, Include: []string{"edit"}}, true, false, true},
		{"by an older name", Offer{Exclude: []string{"search_and_replace"}}, true, false, true},
		{"others", Offer{Exclude: []string{"read_file"}, Include: []string{"x"}, Spares: []string{"y"}}, true, false, false},
	} {
		if a, b, r := c.offer.Offers(usual), c.offer.Offers(silent), c.offer.Excludes(silent); a != c.usual || b != c.silent || r != c.refuse {
			t.Errorf("%s: got %v %v %v, want a = c.usual and b = c.silent and r = c.refuse", c.name, a, b, r)
		}
	}
}
