declare module 'koa-mount' {
  import type Koa from 'koa'

  export default function mount(app: Koa): Koa.Middleware
}
