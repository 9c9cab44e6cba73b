import { examplePath, type Parameter, type Route } from '../catalog/catalog.ts'

/** An address of the route that answers: what is required by its examples, or else the first thing that can be given. */
export function exampleUrl(baseUrl: string, route: Route): string {
  const query = route.parameters.filter((parameter) => parameter.in === 'query')
  const required = query.filter((parameter) => parameter.required)
  const given = required.length === 0 ? query.filter(isOpen).slice(0, 1) : required
  const search = given.map((parameter) => `${parameter.name}=${encode(exampleOf(parameter))}`).join('&')
  return quotable(baseUrl + examplePath(route) + (search === '' ? '' : `?${search}`))
}

/** Between single quotes, in a shell and in JavaScript. */
export function quotable(url: string): string {
  return url.replaceAll("'", '%27')
}

/** Whether it has nothing but an example to start from. */
function isOpen({ default: value, example }: Parameter): boolean {
  return example !== undefined && (value === undefined || value === '')
}

function exampleOf({ example, default: value }: Parameter): string {
  return String(example ?? value ?? '')
}

/** Commas, colons and slashes stay readable: a query takes them as they are. */
function encode(value: string): string {
  return encodeURIComponent(value).replace(/%2C|%3A|%2F/g, decodeURIComponent)
}
