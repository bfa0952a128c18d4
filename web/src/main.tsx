/** Where the page starts. */
import './style.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { startKeys } from './keys.tsx';
import { startLive } from './live.ts';
import { startRouter } from './router.ts';
import { startTheme } from './theme.ts';

startTheme();
startRouter();
startKeys();
render(<App />, document.getElementById('app')!);
void startLive();
