// Package deploy evaluates Terraform modules and CloudFormation templates, far enough to list the resources that they create.
//
// In: files of Terraform or CloudFormation, the variables that a user sets, and the data that AWS returns.
// Out: the resources with their properties, or an error as from Terraform or CloudFormation.
// Never: a call to AWS, a provider, or a guess for unknown data.
//
// Its tests check the files under deploy. These are outside of this module, where the test cache does not see changes: use go test
// -count=1.
package deploy
