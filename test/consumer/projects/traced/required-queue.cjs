const { lambdaQueue } = require("keelson/lambda");
const { build } = require("./service.mjs");

exports.handler = lambdaQueue(build());
