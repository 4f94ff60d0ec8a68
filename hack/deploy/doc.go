// Package deploy reads Terraform modules and CloudFormation templates, far enough to say what they would make.
//
// In: files of Terraform or CloudFormation, what a user would set, and what AWS would answer.
// Out: the resources with their properties, or an error in the place of Terraform's or CloudFormation's.
// Never: a call to AWS, a provider, or a guess at what it does not know.
//
// Its tests judge the files under deploy. Those lie outside of this module, where the test cache does not look: go test -count=1.
package deploy
