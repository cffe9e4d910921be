// Package pagetest drives the web page as a person would: Chromium, without a window, against a real server whose model
// plays a script. docs/web-flows.md names the flows and the test of each.
//
//	go test -C tools/pagetest .                                       every flow; a browser must be installed
//	ROOST_PAGE_PICTURES=$PWD/docs/img go test -C tools/pagetest .     and write the pictures of the docs
//	ROOST_PAGE_LONG=1 go test -C tools/pagetest -timeout 30m .        the long form: every flow at the other size, and what takes
//	                                                                  long: a cut of a minute, 50 tabs, 10,000 tasks
//
// What 50 tabs and 10,000 tasks cost is measured by the bench: go run -C tools/pagetest ./bench
//
// Without Chromium the tests are skipped, unless ROOST_PAGE_BROWSER names one that must be there. The test with axe-core
// gets that by npm, and compares its digest.
//
// Each test has a server, a root folder and a browser profile of its own. The browser reaches the server through a
// relay, which can cut the connection as a network does. After each test the browser must have asked nobody else, shown
// no dialog, and reported no error and no violation of the page's policy.
package pagetest
