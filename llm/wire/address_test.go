package wire

import "testing"

func TestAnAddressHoldsNoPassword(t *testing.T) {
	for base, ok := range map[string]bool{
		"": true, "http://127.0.0.1:11434/v1": true, "https://host/a@b?c@d#e@f": true, "localhost:1234": true, "http://[::1]:1": true,
		"http://u:p@h": false, "http://u@h/v1": false, "u:p@h": false, "//u:p@h": false, "http://u:p/w@h": true, "http://u:p w@h": false, "HTTPS://:p@h?x": false,
	} {
		if err := CheckAddress(base); (err == nil) != ok {
			t.Errorf("%s: got %v, want (err == nil) = ok", base, err)
		}
	}
}
