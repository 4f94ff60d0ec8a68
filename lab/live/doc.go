// Package live measures what a cluster costs with a controller: Joiner's, or Karpenter's own.
//
// In: the programs, and for each run a load script, a seed and a market.
// Out: samples of the price and the pods, the figures of each phase, and a page with medians and plots.
// Never: a figure that a controller reports about itself, or two labs at the same time in one process.
package live
