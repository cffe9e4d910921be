package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/report"
)

// param is a query parameter of a route. The reader of queries and the OpenAPI document use the same table.
type param struct {
	name  string
	kind  string // text, number, flag, time, dollars, word, words
	words []string
	doc   string
	least int // of a number
	most  int
	deflt int
}

// values are the given parameters of one request.
type values struct {
	text   map[string]string
	number map[string]int
	flag   map[string]bool
	time   map[string]int64 // Unix milliseconds
	usd    map[string]*money.USD
}

// longest bounds a parameter, in bytes.
const longest = 4096

// decode reads the query of a request strictly: one problem lists all unknown, repeated and malformed parameters.
func decode(raw string, params []param, now time.Time) (values, error) {
	v := values{map[string]string{}, map[string]int{}, map[string]bool{}, map[string]int64{}, map[string]*money.USD{}}
	for _, p := range params {
		if p.kind == "number" {
			v.number[p.name] = p.deflt
		}
	}
	given, err := url.ParseQuery(raw)
	if err != nil {
		return v, problem(http.StatusBadRequest, "bad_query", "The query cannot be read",
			"it is not of the form name=value&name=value, percent-encoded")
	}
	var wrong []api.Wrong
	for name, texts := range given {
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			wrong = append(wrong, api.Wrong{Parameter: report.Clip(name), Detail: "there is no such parameter" + known(params)})
		case len(texts) > 1:
			wrong = append(wrong, api.Wrong{Parameter: name, Detail: "it is given twice"})
		case len(texts[0]) > longest:
			wrong = append(wrong, api.Wrong{Parameter: name, Detail: "it is too long"})
		default:
			if why := v.read(params[i], texts[0], now); why != "" {
				wrong = append(wrong, api.Wrong{Parameter: name, Detail: why})
			}
		}
	}
	if len(wrong) == 0 {
		return v, nil
	}
	slices.SortFunc(wrong, func(a, b api.Wrong) int { return strings.Compare(a.Parameter, b.Parameter) })
	p := problem(http.StatusUnprocessableEntity, "validation_failed", "A parameter is wrong", wrong[0].Parameter+": "+wrong[0].Detail)
	p.Errors = wrong
	return v, p
}

// read reads one parameter; why is "" when it is well-formed.
func (v *values) read(p param, text string, now time.Time) (why string) {
	switch p.kind {
	case "number":
		n, err := strconv.Atoi(text)
		if err != nil || n < p.least || p.most > 0 && n > p.most {
			if p.most > 0 {
				return "want a whole number from " + strconv.Itoa(p.least) + " to " + strconv.Itoa(p.most)
			}
			return "want a whole number from " + strconv.Itoa(p.least) + " on"
		}
		v.number[p.name] = n
	case "flag":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return "want true or false"
		}
		v.flag[p.name] = b
	case "time":
		at, ok := api.Moment(text, now)
		if !ok {
			return "want a time such as 2026-01-31 or RFC 3339, or an age such as 7d"
		}
		v.time[p.name] = at
	case "dollars":
		usd, err := money.Parse(text)
		if err != nil || usd < 0 {
			return "want an amount of US dollars such as 0.50"
		}
		v.usd[p.name] = &usd
	case "word":
		if !slices.Contains(p.words, text) {
			return "want one of " + strings.Join(p.words, ", ")
		}
		v.text[p.name] = text
	case "words":
		for _, word := range strings.Split(text, ",") {
			if !slices.Contains(p.words, word) {
				return "want some of " + strings.Join(p.words, ", ") + ", joined by commas"
			}
		}
		v.text[p.name] = text
	default:
		v.text[p.name] = text
	}
	return ""
}

func known(params []param) string {
	if len(params) == 0 {
		return "; this route takes none"
	}
	var names []string
	for _, p := range params {
		names = append(names, p.name)
	}
	return "; there are: " + strings.Join(names, ", ")
}
