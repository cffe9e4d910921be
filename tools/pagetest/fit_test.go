package pagetest

import (
	"strings"
	"testing"
)

// The main states of the page, each shown once at each size: axe finds nothing, light and dark; at 320 pixels, and on a
// desktop at 200 %, nothing makes a person scroll sideways; who wants less motion gets none; with the colours that a person
// chose for all pages everything can be read.
func TestStates(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	states := h.states()
	tab := h.loggedIn(desktop, "/")
	stranger := h.browser().open(desktop, "/")
	for _, s := range []size{desktop, phone} {
		name := map[bool]string{true: "desktop", false: "phone"}[s == desktop]
		tab.do("set the window", sized(s))
		for _, state := range states {
			state.show(tab)
			tab.bothSchemes(state.name + ", " + name)
			if s == phone {
				continue
			}
			tab.still(state.name)
			tab.inChosenColours(state.name)
			for name, narrow := range map[string]size{"320 pixels": {320, 640}, "200 %": {640, 450}} {
				tab.do("set the window", sized(narrow))
				tab.within(state.name + " at " + name)
			}
			tab.do("set the window", sized(s), media("", "prefers-color-scheme", "light"))
		}
		stranger.do("set the window", sized(s))
		stranger.bothSchemes("log-in, " + name)
	}
}

// bothSchemes fails for what axe finds in a state, light and dark. What is dark differs in its colours only.
func (t *tab) bothSchemes(state string) {
	t.Helper()
	t.do("be light", media("", "prefers-color-scheme", "light"))
	t.accessible(state+", light", "")
	t.do("be dark", media("", "prefers-color-scheme", "dark"))
	t.accessible(state+", dark", "color-contrast")
	t.do("be light", media("", "prefers-color-scheme", "light"))
}

// within fails for what is outside of a narrow window. What a dialog folds away is opened: a browser does not lay it out before.
func (t *tab) within(state string) {
	t.Helper()
	run[bool](t, `document.querySelectorAll('dialog[open] details').forEach(e => { e.open = true; });
		new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`) // it has its new size
	t.fits(state)
	if out := run[string](t, `[...document.querySelectorAll('dialog[open], dialog[open] *, #composer *, .question *')].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 150)).join('\n')`); out != "" {
		t.Errorf("%s: outside of the window: %s", state, out)
	}
}

// still fails for what moves although the person wants less motion.
func (t *tab) still(state string) {
	t.Helper()
	t.do("want less motion", media("", "prefers-reduced-motion", "reduce"))
	if got := run[string](t, `[...document.querySelectorAll('*')].flatMap(e => ['', '::before', '::after', '::backdrop'].map(p => [e, p, getComputedStyle(e, p || undefined)]))
		.filter(([, , s]) => parseFloat(s.transitionDuration) + parseFloat(s.animationDuration) > 0.001 || s.scrollBehavior === 'smooth').map(([e, p]) => e.outerHTML.slice(0, 100) + p).slice(0, 5).join('\n')`); got != "" {
		t.Errorf("%s moves: %s", state, got)
	}
}

// inChosenColours fails for what keeps its own colours, or has no edge where one presses, when a person chose the colours of
// all pages. The browser chooses all colours, unless an element opts out.
func (t *tab) inChosenColours(state string) {
	t.Helper()
	t.do("force colours", media("", "forced-colors", "active"))
	if got := run[string](t, `[...document.querySelectorAll('body :not(option)')].filter(e => getComputedStyle(e).forcedColorAdjust === 'none').map(e => e.outerHTML.slice(0, 150)).join('\n')`); got != "" {
		t.Errorf("%s: keeps its own colours: %s", state, got)
	}
	if got := run[string](t, `[...document.querySelectorAll('button, input:not([type=checkbox]), textarea, select')].filter(e => e.checkVisibility() && e.getBoundingClientRect().width > 2)
		.filter(e => { const s = getComputedStyle(e); return s.borderTopStyle === 'none' && s.textDecorationLine === 'none' && s.outlineStyle === 'none'; }).map(e => e.outerHTML.slice(0, 150)).join('\n')`); got != "" {
		t.Errorf("%s: nothing shows where one presses: %s", state, got)
	}
}

// A task on paper is its messages, whole, in black on white.
func TestPrint(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	states := h.states()
	tab := h.loggedIn(desktop, "/")
	for _, state := range states {
		if state.name != "task" && state.name != "history" && state.name != "changes" {
			continue
		}
		tab.do("use a screen", media("", "prefers-color-scheme", "dark"))
		state.show(tab)
		tab.do("use paper", sized(size{794, 1123}), media("print", "prefers-color-scheme", "dark"))
		tab.fits(state.name + " on paper")
		if got := run[string](tab, `['.top', '.side', '#composer', '.acts', '.pages', '#notes'].filter(s => document.querySelector(s)?.checkVisibility()).join()`); got != "" {
			t.Errorf("%s: paper has %s", state.name, got)
		}
		if got := run[string](tab, `[...document.querySelectorAll('main *, h1')].filter(e => e.checkVisibility() && e.childNodes.length === 1 && e.firstChild.nodeType === 3 && e.textContent.trim()).filter(e => {
			const c = getComputedStyle(e).color.match(/\d+/g).map(Number); return c[0] + c[1] + c[2] > 400; }).map(e => getComputedStyle(e).color + ' ' + e.outerHTML.slice(0, 120)).slice(0, 5).join('\n')`); got != "" {
			t.Errorf("%s: too pale on paper: %s", state.name, got)
		}
		if got := run[string](tab, `[...document.querySelectorAll('main pre')].filter(e => e.checkVisibility() && e.scrollHeight > e.clientHeight + 2).map(e => e.outerHTML.slice(0, 120)).join('\n')`); got != "" {
			t.Errorf("%s: paper cannot scroll: %s", state.name, got)
		}
		tab.do("use a screen", sized(desktop))
	}
}

// A wide table of a reply scrolls sideways in its place and keeps its words whole, a list of many levels fits, and a question among the messages has
// one frame.
func TestWideTable(t *testing.T) {
	t.Parallel()
	heading, line, list := strings.Repeat("| heading ", 12), strings.Repeat("|---", 12), ""
	for depth := range 12 {
		list += strings.Repeat("  ", depth) + "- point\\n"
	}
	_, _, tab := asked(t, narrow, "- {text: \""+list+"\\n"+heading+"|\\n"+line+"|\\n"+heading+"|\\n| "+strings.Repeat("path/to/", 40)+" |\", tools: [{name: ask_followup_question, "+
		"input: {question: Ready?, follow_up: [{text: go on, mode: null}]}}]}\n"+finishes)
	tab.within("a wide table")
	const cells = "[...document.querySelectorAll('#messages tr:not(:last-child) > *')]"
	if got := run[int](tab, "Math.max(..."+cells+".slice(1).map(e => e.clientHeight))"); got > 50 {
		t.Errorf("a cell with one word has a height of %d pixels, want one line", got)
	}
	if got := run[int](tab, "Math.max(..."+cells+".map(e => e.clientWidth))"); got > int(narrow.width) {
		t.Errorf("a cell with one long path has a width of %d pixels, want it in the window", got)
	}
	if got := run[string](tab, "getComputedStyle(document.querySelector('#messages > li.question')).borderTopWidth"); got != "0px" {
		t.Errorf("the message of a question has a border of %s around its frame, want none", got)
	}
}
