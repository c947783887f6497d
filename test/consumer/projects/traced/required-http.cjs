const { lambdaHttp } = require("keelson/lambda");
const { build } = require("./service.mjs");

exports.handler = lambdaHttp(build());
