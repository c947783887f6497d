# The sample of examples/files as an image, and a template for an application of yours. It stores on AWS, or on what
# AWS_ENDPOINT_URL names, and needs KEELSON_AUTH_SECRET. Both come from the environment: nothing secret is built in.

# The digest is of the index for all platforms; its Node is the one of scripts/node/package.json.
FROM node:24.21.0-bookworm-slim@sha256:d6aa754f16b3197301076f047b5def2f02ea1dbbc2ca920407d46d7ec7f87b20 AS base
WORKDIR /app

FROM base AS build
COPY package.json package-lock.json ./
# Without the workspace, Node's binaries for development: the image has its own.
RUN --mount=type=cache,target=/root/.npm npm ci --workspaces=false --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.mjs scripts/dist-format.json scripts/
COPY src src
RUN npm run build

FROM base AS dependencies
COPY package.json package-lock.json ./
# The second line is for the sample: what it needs besides keelson is among the devDependencies here. An application has its
# own among its dependencies, and needs no such line.
RUN --mount=type=cache,target=/root/.npm npm ci --workspaces=false --omit=dev --ignore-scripts --no-audit --no-fund \
    && npm install --no-save --save-prod --workspaces=false --omit=dev --ignore-scripts --no-audit --no-fund \
    zod@4.6.7 @aws-sdk/client-s3@3.1162.0 @aws-sdk/s3-request-presigner@3.1162.0

FROM base AS runtime
ENV NODE_ENV=production
COPY package.json ./
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY examples/files examples/files
# The image's user `node`, by its number, so that Kubernetes can tell that it is not root. The files stay root's.
USER 1000:1000
EXPOSE 3000
STOPSIGNAL SIGTERM
# Not live for 45 s: longer than a shutdown takes, whose listener closes before its end.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["node", "-e", "process.exit((await fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/live`)).ok ? 0 : 1)"]
# No shell and no npm before Node: they would keep SIGTERM to themselves.
ENTRYPOINT ["node", "examples/files/main.ts"]
