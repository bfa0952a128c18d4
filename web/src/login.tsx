/**
 * The token, asked for: as the whole page while nobody is known, and above the page when the console has
 * forgotten who we are, so that what is being written there stays.
 */
import { useState } from 'preact/hooks';
import { Failure } from './confirm.tsx';
import { failure, listen, session } from './live.ts';
import { closeDialog, Dialog, openDialog } from './overlay.tsx';
import { login } from './transport.ts';

export function Login() {
  const form = useLogin(failure.value);
  return (
    <main class="alone">
      <form
        class="panel login"
        onSubmit={(event) => {
          event.preventDefault();
          void form.submit();
        }}
      >
        <h1>drover</h1>
        {form.field}
        <button type="submit" class="button main" disabled={!form.isReady}>
          Enter
        </button>
      </form>
    </main>
  );
}

export function askToken(): void {
  openDialog(() => <LoginAgain />);
}

function LoginAgain() {
  const form = useLogin(null);
  return (
    <Dialog
      title="The console wants its token again"
      onSubmit={() => void form.submit().then((isIn) => isIn && closeDialog())}
      footer={
        <button type="submit" class="button main" disabled={!form.isReady}>
          Enter
        </button>
      }
    >
      <div class="body">{form.field}</div>
    </Dialog>
  );
}

function useLogin(first: string | null) {
  const [token, setToken] = useState('');
  const [error, setError] = useState(first);
  const submit = async (): Promise<boolean> => {
    try {
      session.value = await login(token.trim());
      failure.value = null;
      listen();
      return true;
    } catch (refusal) {
      setError((refusal as Error).message);
      return false;
    }
  };
  const field = (
    <>
      <label>
        Token that the console was started with
        <input
          class="field mono"
          type="password"
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <Failure text={error} />
    </>
  );
  return { field, submit, isReady: token.trim() !== '' };
}
