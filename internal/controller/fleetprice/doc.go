// Package fleetprice compares the price of the nodes with the price of a plan that launches all of them anew, and with
// the lower bound of that price. The difference is what the cluster pays because pods came and went one after the other.
//
// In: nodes with their pods, offerings and prices.
// Out: metrics, a log line.
// Never: a change of the cluster.
package fleetprice
