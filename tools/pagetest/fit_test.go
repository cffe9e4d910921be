package pagetest

import "testing"

// At 320 pixels, and on a desktop at 200 %, nothing makes a person scroll sideways.
func TestNarrowAndZoomed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	states := h.states()
	tab := h.loggedIn(desktop, "/")
	for name, s := range map[string]size{"320 pixels": {320, 640}, "200 %": {640, 450}} {
		tab.do("set the window", sized(s))
		for _, state := range states {
			state.show(tab)
			tab.fits(state.name + " at " + name)
			if out := run[string](tab, `[...document.querySelectorAll('dialog[open], dialog[open] *, #composer *, .question *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 150)).join('\n')`); out != "" {
				t.Errorf("%s at %s: outside of the window: %s", state.name, name, out)
			}
		}
	}
}

// Who wants less motion gets none.
func TestReducedMotion(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	states := h.states()
	tab := h.loggedIn(desktop, "/")
	tab.do("want less motion", media("", "prefers-reduced-motion", "reduce"))
	for _, state := range states {
		state.show(tab)
		if got := run[string](tab, `[...document.querySelectorAll('*')].flatMap(e => ['', '::before', '::after', '::backdrop'].map(p => [e, p, getComputedStyle(e, p || undefined)]))
			.filter(([, , s]) => parseFloat(s.transitionDuration) + parseFloat(s.animationDuration) > 0.001 || s.scrollBehavior === 'smooth').map(([e, p]) => e.outerHTML.slice(0, 100) + p).slice(0, 5).join('\n')`); got != "" {
			t.Errorf("%s moves: %s", state.name, got)
		}
	}
}

// With the colours that a person chose for all pages, everything can be read, and what can be pressed or has the focus
// has an edge.
func TestForcedColours(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	states := h.states()
	tab := h.loggedIn(desktop, "/")
	tab.do("force colours", media("", "forced-colors", "active"))
	for _, state := range states {
		state.show(tab)
		// The browser chooses all colours, unless an element opts out.
		if got := run[string](tab, `[...document.querySelectorAll('body :not(option)')].filter(e => getComputedStyle(e).forcedColorAdjust === 'none').map(e => e.outerHTML.slice(0, 150)).join('\n')`); got != "" {
			t.Errorf("%s: keeps its own colours: %s", state.name, got)
		}
		if got := run[string](tab, `[...document.querySelectorAll('button, input:not([type=checkbox]), textarea, select')].filter(e => e.checkVisibility() && e.getBoundingClientRect().width > 2)
			.filter(e => { const s = getComputedStyle(e); return s.borderTopStyle === 'none' && s.textDecorationLine === 'none' && s.outlineStyle === 'none'; }).map(e => e.outerHTML.slice(0, 150)).join('\n')`); got != "" {
			t.Errorf("%s: nothing shows where one presses: %s", state.name, got)
		}
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
