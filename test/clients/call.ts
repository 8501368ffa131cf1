// Calls every operation of the document with the client that @hey-api/openapi-ts generated, and
// prints for each what was answered. Arguments are the examples of the document; the id of an item
// is that of the last in its list: the first token is that of the calls.
import document from "./openapi.json";
import { client } from "./hey/client.gen";
import * as sdk from "./hey/sdk.gen";
import type { operations } from "./schema";

type Options = { path: Record<string, unknown>; query: Record<string, unknown>; body?: unknown };

declare const process: { env: Record<string, string> };

type Node = any;

// The compiler reports an operation that is in one client and not in the other.
const calls: Record<keyof operations, Node> = sdk;

const root: Node = document;
const resolve = (node: Node): Node =>
	node?.$ref ? resolve(node.$ref.slice(2).split("/").reduce((at: Node, key: string) => at[key], root)) : node;

const exampleOf = (node: Node): unknown => {
	if (node.example !== undefined) return node.example;
	const named = Object.values(node.examples ?? {})[0];
	if (named !== undefined) return resolve(named).value;
	const schema = resolve(node.schema);
	return schema.example ?? schema.examples?.[0] ?? schema.default ?? schema.enum?.[0];
};

const parametersOf = (path: string, operation: Node): Node[] =>
	[...(root.paths[path].parameters ?? []), ...(operation.parameters ?? [])].map(resolve);

// optionsOf returns the arguments of an operation: the domain of the test, ids, and examples.
async function optionsOf(path: string, operation: Node): Promise<Options> {
	const options: Options = { path: {}, query: {} };
	for (const parameter of parametersOf(path, operation)) {
		if (!parameter.required) continue;
		const into = parameter.in === "path" ? options.path : options.query;
		into[parameter.name] = parameter.name === "domain" ? process.env.DOMAIN : await lastOf(path, parameter, options) ?? exampleOf(parameter);
	}
	const content = resolve(operation.requestBody)?.content;
	if (content?.["application/json"]) options.body = exampleOf(content["application/json"]);
	else if (content) options.body = process.env.REPORT;
	return options;
}

// lastOf returns the id of the last item of the list that an item's path begins with.
async function lastOf(path: string, parameter: Node, options: Options): Promise<unknown> {
	const list = path.split(`/{${parameter.name}}`)[0];
	const operation = root.paths[list]?.get;
	if (parameter.in !== "path" || !operation) return undefined;
	const { data } = await calls[operation.operationId as keyof typeof calls]({ path: options.path, query: {} });
	const item = (data as Node)?.items?.at(-1);
	return item?.[parameter.name] ?? item?.id ?? item?.key ?? item?.seq;
}

// What makes something comes first, and what deletes last, domains at the end.
const rank = (path: string, method: string) =>
	method === "delete" ? 4 : method === "get" ? 2 : method === "put" ? 1 : path.includes("{") ? 3 : 0;
const all = Object.entries(root.paths as Record<string, Node>)
	.flatMap(([path, item]) => ["post", "put", "get", "patch", "delete"].filter((method) => item[method]).map((method) => ({ path, method, operation: item[method] })))
	.sort((a, b) => rank(a.path, a.method) - rank(b.path, b.method));
all.push(...all.splice(all.findIndex(({ operation }) => operation.operationId === "deleteDomain"), 1));

client.setConfig({ baseUrl: root.servers[0].url, auth: () => process.env.TOKEN });
await sdk.uploadReport({ body: "hello" as never }); // which is rejected
const answers = [];
for (const { path, operation } of all) {
	const { response, error } = await calls[operation.operationId as keyof typeof calls](await optionsOf(path, operation));
	const status = response?.status ?? 0;
	answers.push({ operation: operation.operationId, status, documented: String(status) in operation.responses, error: status < 400 ? "" : JSON.stringify(error ?? null) });
}
console.log(JSON.stringify(answers));
