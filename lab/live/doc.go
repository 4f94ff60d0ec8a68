// Package live measures what a cluster pays while a controller runs it: Joiner, or Karpenter's own controller.
//
// In: the programs, and the runs: a load script, a seed and a market for each.
// Out: samples of the price and the pods, the figures of each phase, a page with medians, and plots.
// Never: a figure from a controller, or two labs at the same time.
package live
