// The most node:http can do: one short constant.
import { createServer } from 'node:http'
import { ready } from './ready.mjs'

const BODY = '{"error":"payment_required"}'
const HEADERS = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(BODY) }

ready(createServer((_, response) => response.writeHead(402, HEADERS).end(BODY)))
