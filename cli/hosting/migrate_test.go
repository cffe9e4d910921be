package hosting

import "testing"

func TestWithoutPassword(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]string{
		"/root/of?tasks:a@b":                             "/root/of?tasks:a@b",
		"postgres://127.0.0.1:5432/roost":                "postgres://127.0.0.1:5432/roost",
		"postgres://ann@db1:5432,db2:5433/roost":         "postgres://ann@db1:5432,db2:5433/roost",
		"postgres://ann:secret@db1:5432,db2/roost":       "postgres://ann@db1:5432,db2/roost",
		"postgres://ann:se?cr#e[t:%20@db/roost":          "postgres://ann@db/roost",
		"postgres://:secret@db":                          "postgres://@db",
		"postgresql://db/roost?user=ann&password=sec@et": "postgresql://db/roost",
		"postgres://ann@db?password=secret":              "postgres://ann@db",
	} {
		if got := withoutPassword(end); got != want {
			t.Errorf("withoutPassword(%q): got %q, want %q", end, got, want)
		}
	}
}
