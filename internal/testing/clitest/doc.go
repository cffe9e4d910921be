// Package clitest makes an App for tests: no terminal, a fixed clock, folders of its own.
package clitest
