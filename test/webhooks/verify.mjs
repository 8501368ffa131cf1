// Reads deliveries as a JSON array of {secret, headers, body} and writes an array with "" for
// each that the reference library verifies, and the reason for each other.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const results = JSON.parse(readFileSync(0, "utf8")).map(({ secret, headers, body }) => {
	try {
		new Webhook(secret).verify(body, headers);
		return "";
	} catch (error) {
		return String(error);
	}
});
console.log(JSON.stringify(results));
