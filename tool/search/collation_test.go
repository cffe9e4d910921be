package search

import "testing"

func TestCompareNames(t *testing.T) {
	ordered := []string{" x", "_a", "-a", ".a", "(a", "@a", "+a", "$a", "1", "02", "3a", "10", "a", "a-b", "a.b", "a1", "a02", "a10", "ab", "É1", "e2", "zz", "ω", "ж", "ა", "ա", "א", "ا", "अ", "ก", "한국", "あ", "カー", "かあ", "き", "ㄅ", "一", "中文", "日本", "龥"}
	for i := range ordered {
		for j := range ordered {
			got := compareNames(ordered[i], ordered[j])
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q against %q: %d", ordered[i], ordered[j], got)
			}
		}
	}
	for _, pair := range [][2]string{{"README", "readme"}, {"é", "E"}, {"e\u0301", "e"}, {"a01", "a1"}, {"が", "か"}, {"ア", "あ"}, {"ヅ", "っ"}} {
		if compareNames(pair[0], pair[1]) != 0 {
			t.Errorf("%q and %q differ", pair[0], pair[1])
		}
	}
}
