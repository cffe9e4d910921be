package infer

import "testing"

func TestTimeOfID(t *testing.T) {
	for id, want := range map[string]int64{
		"1776200000000": 1776200000000, "1776200000000_ab3xz": 1776200000000, "019a0f5e-8c00-7000-8000-000000000000": 0x019a0f5e8c00,
		"9b2e7c1a-1f5b-4c1e-9a35-6f0f7a6f2c11": 0, "mine": 0, "177620000000": 0, "17762000000000": 0, "-177620000000": 0, "": 0,
	} {
		if got := TimeOfID(id); got != want {
			t.Errorf("%s: got %d, want %d", id, got, want)
		}
	}
}
