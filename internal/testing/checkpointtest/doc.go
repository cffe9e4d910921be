// Package checkpointtest proves what checkpoints promise: its tests let an agent, its commands, a user and git change
// one workspace in any order, restore to any checkpoint, and compare the disk with a model that is nothing but whole
// pictures of the workspace.
//
// A Tree is such a picture. A History is what one task's checkpoints should hold by the rules alone; it knows no
// hashes, no journal and no store, so that it cannot share a mistake with what it judges.
//
// Limits: a picture holds no folders, only the files in them. Merges are judged by lines that are far apart, where
// every three-way merge agrees.
package checkpointtest
