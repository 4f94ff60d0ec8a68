// Package deploy evaluates Terraform modules and CloudFormation templates, far enough to list the resources that they
// create.
//
// In: files of Terraform or CloudFormation, the variables that a user sets, and the data that AWS returns.
// Out: the resources with their properties, or the error that Terraform or CloudFormation would return.
// Never: a call to AWS, a provider, or a guess for unknown data.
//
// The tests check the files in the folder deploy of the checkout. These files are outside of this Go module, so go test
// shows cached results after a change of them: use go test -count=1.
package deploy
