// Package try runs Roost's own trial: a scripted task in a folder of its own, killed in the
// middle and continued, with a check of what is on disk. It touches no task of the user's and
// needs no model.
package try
