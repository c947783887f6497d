# The generated templates as stacks of CloudFormation, for a team that uses Terraform for everything else.
variable "user_pool" {
  type = string
}

variable "user_pool_client" {
  type = string
}

variable "code_bucket" {
  type = string
}

variable "code_key" {
  type = string
}

resource "aws_cloudformation_stack" "data" {
  name          = "orders-prod-data"
  template_body = file("${path.module}/infra/generated/data-prod.json")
  parameters    = { NamePrefix = "orders-prod" }
}

resource "aws_cloudformation_stack" "functions" {
  name          = "orders-prod-functions"
  template_body = file("${path.module}/infra/generated/functions-prod.json")
  capabilities  = ["CAPABILITY_IAM"]
  parameters = {
    NamePrefix           = "orders-prod"
    OutboxTableStreamArn = aws_cloudformation_stack.data.outputs["OutboxTableStreamArn"]
    UserPool             = var.user_pool
    UserPoolClient       = var.user_pool_client
    CodeBucket           = var.code_bucket
    CodeKey              = var.code_key
  }
}

output "url" {
  value = aws_cloudformation_stack.functions.outputs["HttpApiUrl"]
}
