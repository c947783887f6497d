const { runContainer } = require("keelson/container");
const { build } = require("./service.mjs");

void runContainer(build(), { port: 0 });
