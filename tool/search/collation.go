package search

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// compareNames orders names as people expect: digits by value, case and accents
// ignored, blanks before punctuation before symbols before digits before letters.
// It follows the root collation of Unicode for Latin names; other scripts go behind
// them in that collation's order, and within a script by code point.
//
// golang.org/x/text/collate gives the same order and was rejected: its tables add 1.5 MB to the program.
func compareNames(a, b string) int {
	ea, eb := elements(a), elements(b)
	for i := range min(len(ea), len(eb)) {
		if c := ea[i].compare(eb[i]); c != 0 {
			return c
		}
	}
	return len(ea) - len(eb)
}

// element is a character or a number.
type element struct {
	rank   int
	number string // digits without leading zeros
}

func (e element) compare(o element) int {
	if c := cmp.Compare(e.rank, o.rank); c != 0 {
		return c
	}
	if c := len(e.number) - len(o.number); c != 0 {
		return c
	}
	return strings.Compare(e.number, o.number)
}

// asciiOrder is the root collation's order of what is neither digit nor letter.
const asciiOrder = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"

// Where ranks of each group begin.
const (
	otherMarks = 1 << 8
	digitRank  = 1 << 22
	letterRank = 1<<22 + 1
)

func elements(s string) []element {
	var out []element
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		r := rs[i]
		if d := digitOf(r); d >= 0 {
			var num strings.Builder
			for ; i < len(rs) && digitOf(rs[i]) >= 0; i++ {
				if d := digitOf(rs[i]); d > 0 || num.Len() > 0 {
					num.WriteByte(byte('0' + d))
				}
			}
			i--
			out = append(out, element{rank: digitRank, number: num.String()})
			continue
		}
		if unicode.Is(unicode.Mn, r) || unicode.IsControl(r) && !strings.ContainsRune(asciiOrder, r) || unicode.Is(unicode.Cf, r) {
			continue // accents written apart, and what is not seen
		}
		if p := strings.IndexRune(asciiOrder, r); p >= 0 {
			out = append(out, element{rank: 1 + p})
			continue
		}
		base, ok := bases[unicode.ToLower(r)]
		if !ok {
			base = string(unicode.ToLower(r))
		}
		for _, b := range base {
			switch {
			case unicode.IsLetter(b) && !isMarkOfKana(b):
				out = append(out, element{rank: letterRank + script(b)<<21 + int(b)})
			default:
				out = append(out, element{rank: otherMarks + int(b)})
			}
		}
	}
	return out
}

// scripts is the root collation's order of scripts.
var scripts = []*unicode.RangeTable{
	unicode.Latin, unicode.Greek, unicode.Coptic, unicode.Cyrillic, unicode.Glagolitic, unicode.Georgian, unicode.Armenian, unicode.Hebrew,
	unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Tifinagh, unicode.Ethiopic, unicode.Devanagari, unicode.Bengali,
	unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
	unicode.Thai, unicode.Lao, unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Mongolian, unicode.Cherokee,
	unicode.Canadian_Aboriginal, unicode.Hangul, unicode.Hiragana, unicode.Bopomofo, unicode.Yi, unicode.Han,
}

// script is the place of a letter's script. Unknown ones come last.
func script(r rune) int {
	if r < 0x250 {
		return 0
	}
	for i, s := range scripts {
		if unicode.Is(s, r) {
			return i
		}
	}
	return len(scripts)
}

// isMarkOfKana: the signs of a long vowel and of repetition are no letters.
func isMarkOfKana(r rune) bool { return r == 'ー' || r == '々' }

func digitOf(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return int(r - '0')
	case r >= 0xFF10 && r <= 0xFF19:
		return int(r - 0xFF10)
	}
	return -1
}

// bases gives the plain letters of accented ones, by groups.
var bases = func() map[rune]string {
	m := map[rune]string{}
	for base, accented := range map[string]string{
		"a": "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặª", "ae": "æǣǽ", "b": "ḃḅḇ", "c": "çćĉċčḉ", "d": "ďđḋḍḏḑḓ",
		"e": "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ", "f": "ḟ", "g": "ĝğġģǧǵḡ", "h": "ĥħȟḣḥḧḩḫ", "i": "ìíîïĩīĭįǐȉȋḭḯỉị",
		"j": "ĵǰ", "k": "ķǩḱḳḵ", "l": "ĺļľłḷḹḻḽ", "m": "ḿṁṃ", "n": "ñńņňǹṅṇṉṋ",
		"o": "òóôõöøōŏőơǒǫǭǿȍȏȫȭȯȱọỏốồổỗộớờởỡợº", "oe": "œ", "p": "ṕṗ", "r": "ŕŗřȑȓṙṛṝṟ", "s": "śŝşšșṡṣṥṧṩ", "ss": "ß",
		"t": "ţťțṫṭṯṱ", "u": "ùúûüũūŭůűųưǔǖǘǚǜȕȗụủứừửữự", "v": "ṽṿ", "w": "ŵẁẃẅẇẉ", "x": "ẋẍ", "y": "ýÿŷȳẏỳỵỷỹ", "z": "źżžẑẓẕ",
		"α": "ά", "ε": "έ", "η": "ή", "ι": "ίϊΐ", "ο": "ό", "υ": "ύϋΰ", "ω": "ώ", "σ": "ς", "е": "ё",
	} {
		for _, r := range accented {
			m[r] = base
		}
	}
	// A base and its small and voiced forms; Katakana is Hiragana in other shapes.
	for _, kana := range strings.Fields("あぁ いぃ うぅゔ えぇ おぉ かがゕ きぎ くぐ けげゖ こご さざ しじ すず せぜ そぞ ただ ちぢ つっづ てで とど はばぱ ひびぴ ふぶぷ へべぺ ほぼぽ やゃ ゆゅ よょ わゎ") {
		base, _ := utf8.DecodeRuneInString(kana)
		for _, r := range kana {
			m[r] = string(base)
		}
	}
	for r := 'ァ'; r <= 'ヶ'; r++ {
		same := r - 'ァ' + 'ぁ'
		m[r] = cmp.Or(m[same], string(same))
	}
	return m
}()
