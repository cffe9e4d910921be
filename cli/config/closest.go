package config

// Closest is the key that a mistyped name most likely means, "" when none is near.
func Closest(name string) string {
	best, least := "", 3
	if profile, field, ok := profileField(name); ok {
		for _, k := range profileKeys {
			if d := Distance(field, k.Name); d < least {
				best, least = "profiles."+profile+"."+k.Name, d
			}
		}
		return best
	}
	for _, k := range Keys {
		if d := Distance(name, k.Name); d < least {
			best, least = k.Name, d
		}
	}
	return best
}

// Distance is how many letters must be put in, taken out, changed or swapped with
// the next one to make b of a.
func Distance(a, b string) int {
	before, above := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := above[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}
