// Package packing decides where pods go and what is bought for them.
//
// In: a snapshot of the cluster, the market, and how much work the plan may take.
// Out: a Plan: machines to buy, pods onto nodes that are there, and why the rest have no place.
// Never: a clock, chance, a call to anything, or an answer that depends on the order of its input.
//
// # How Solve works
//
// Pods that ask for the same thing are one class with a count (package pending). What may
// be bought for them is one numbering of offers (package offers), in which a class has
// stages: the sets of offers that it accepts, to try one after the other. Nodes that are
// there, and domains, are the terrain (package terrain). All of that is known before
// the first pod is placed.
//
// Rules among pods (package topology) come first: pods that keep to zones, or to
// the domains of any other label, are sent there (split), as parts of their
// class that accept only what is in the domain. Rules about hosts are judged machine by
// machine as it fills; pods that must share a machine travel as one unit (bundle), and
// so do those that would rather share one, as long as there is one for them (gather, relax).
// If a domain cannot have what was sent there, the plan is made anew with that
// known (again), and what relied on it is taken out (withdraw, audit). So it is if
// machines for other pods make a zone count that had no node (foresee). Who is
// left in the end is tried once more against the plan as it stands (rescue).
//
// The lower bound (package bound) prices each pod (appraise). Filling a machine is
// then a matter of worth per price: nodes that are there are filled first (place), then
// the lot is bought, again and again, whose filled machine gives most worth for its
// money (run.buy), as many copies at once as the counts allow. A machine is filled from a
// shelf: rows of classes of one proportion, of which only the largest that fits
// is looked at. So the work grows with classes, not with pods. The first try
// shares every class out over machines; if its price is close to the bound it is the plan.
// Otherwise machines are filled with care (carefully), the worst are bought anew (improve), and
// pods change places, so that what is free here and there adds up (trade); of plans that
// cost about the same the one wins that crowds fewest pods of a class onto one machine. A handful of pods is solved exactly (exactly).
//
// Instances of capacity reservations are paid for, and there are only so many. So they
// are filled before anything is bought (fillReserves), and what is bought by its
// price never takes one; the bound allows for what they can save (leastPrice).
//
// Each machine keeps every offer that could host its pods (candidates), cheapest
// first. Pods that are left are held against every offer, step by step, to say
// what stands in their way and what the smallest change would be (refusals).
package packing
